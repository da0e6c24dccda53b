package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dockgate/dockgate/internal/catalog"
	formats "github.com/dockgate/dockgate/internal/catalog/source"
	"github.com/dockgate/dockgate/internal/sandbox"
)

// publicServers is how many servers Docker's public catalog has.
const publicServers = 328

// measureCatalog measures how long it takes to read a catalog of the size of
// Docker's public one, and to compile every container in it. The public
// catalog itself is read where it is found beside the repository; it is other
// people's data.
func measureCatalog(ctx context.Context, b *bench) error {
	data, err := os.ReadFile(filepath.Join("..", "shared", "datasets", "docker-catalog", "catalog.yaml"))
	if errors.Is(err, os.ErrNotExist) {
		data, err = []byte(likePublic()), nil
	}
	if err != nil {
		return err
	}
	var times []float64
	for range b.pairs {
		began := time.Now()
		compiled, err := loadAndCompile(ctx, data)
		if err != nil {
			return err
		}
		if compiled == 0 {
			return errors.New("catalog: no container was compiled")
		}
		times = append(times, milliseconds(time.Since(began)))
	}
	return b.add("catalog.load_328_ms", times)
}

// loadAndCompile returns how many containers were compiled. Those that need
// settings are read and checked, and are compiled up to these.
func loadAndCompile(ctx context.Context, data []byte) (compiled int, err error) {
	file, err := formats.Parse(ctx, catalog.Origin{Catalog: "catalog.yaml", Kind: catalog.User}, data, catalog.Surroundings{})
	if err != nil {
		return 0, err
	}
	if len(file.Servers) != publicServers {
		return 0, fmt.Errorf("catalog: has %d servers, want %d", len(file.Servers), publicServers)
	}
	image := sandbox.Image{
		Ref: "example/server", Pin: sandbox.Pin{Kind: sandbox.LocalID, Digest: "sha256:" + strings.Repeat("0", 64), Platform: "linux/amd64"},
		Config: sandbox.ImageConfig{Entrypoint: []string{"/server"}},
	}
	host := sandbox.Host{Home: "/home/ann", Stat: func(path string) (sandbox.HostPath, error) {
		return sandbox.HostPath{Real: path}, nil
	}}
	for _, s := range file.Servers {
		if s.Runs() != catalog.KindContainer {
			continue
		}
		spec, err := sandbox.Compile(s, nil, image, host)
		var settings *catalog.SettingsError
		if errors.As(err, &settings) {
			continue // it requires some
		}
		if err != nil {
			return 0, err
		}
		sandbox.NewGrant(s, spec, nil).Digest()
		compiled++
	}
	return compiled, nil
}

// likePublic is a catalog of the public one's size and make.
func likePublic() string {
	var b strings.Builder
	b.WriteString("version: 3\nregistry:\n")
	for i := range publicServers {
		fmt.Fprintf(&b, `  server-%03d:
    title: Server %03d
    description: %s
    type: server
    image: example/server-%03d
    command: ["--level={{server-%03d.level}}"]
    volumes: ["{{server-%03d.paths|volume|into}}"]
    env: [{name: LEVEL, value: "{{server-%03d.level}}"}]
    secrets: [{name: server-%03d.token, env: TOKEN, example: abc}]
    config: [{name: server-%03d, type: object, properties: {level: {type: string}, paths: {type: array, items: {type: string}}}}]
    tools: [{name: first, description: Does the first thing}, {name: second, description: Does the second thing}]
    metadata: {category: testing, tags: [one, two, three]}
`, i, i, strings.Repeat("Does one thing and another. ", 6), i, i, i, i, i, i)
	}
	return b.String()
}
