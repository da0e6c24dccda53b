package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "node_modules")
	if err := os.MkdirAll(filepath.Join(source, "pkg"), 0o700); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(source, "pkg", "index.js")
	if err := os.WriteFile(script, []byte("script"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("pkg/index.js", filepath.Join(source, "link")); err != nil {
		t.Fatal(err)
	}
	build := func(name string) []byte {
		entries, err := tree(source, "app/node_modules")
		if err != nil {
			t.Fatal(err)
		}
		l, err := write(filepath.Join(dir, name), append(entries, append(common(), entry{name: "etc/passwd", mode: 0o644, content: "root"})...))
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(string(l))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	first := build("first.tar")
	if err := os.Chtimes(script, time.Time{}, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if second := build("second.tar"); !bytes.Equal(first, second) {
		t.Error("the same content made two different layers")
	}

	var got []string
	archive := tar.NewReader(bytes.NewReader(first))
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%o %d %s %s%s", header.Mode, header.Uid, header.Name, header.Linkname, content))
	}
	want := []string{
		"755 0 app/ ",
		"755 0 app/node_modules/ ",
		"777 0 app/node_modules/link pkg/index.js",
		"755 0 app/node_modules/pkg/ ",
		"644 0 app/node_modules/pkg/index.js script",
		"755 1000 data/ ",
		"755 0 etc/ ",
		"644 0 etc/passwd root",
		"1777 0 tmp/ ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("layer differs (-want +got):\n%s", diff)
	}
}
