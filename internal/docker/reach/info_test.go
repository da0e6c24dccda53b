package reach_test

import (
	"strings"
	"testing"

	"github.com/dockgate/dockgate/internal/docker/dockertest"
)

func TestInfo(t *testing.T) {
	engine := dockertest.Require(t)
	info, err := engine.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if info.API == "" || info.EngineAPI == "" || info.Version == "" || info.CPUs == 0 || info.Memory == 0 ||
		info.Storage == "" || info.CgroupVersion == "" || !strings.HasPrefix(info.Platform, "linux/") {
		t.Errorf("Info() = %+v, want every field of an engine", info)
	}
	if info.Host != engine.Host() || info.Local != engine.Local() || (info.Socket != nil) != strings.HasPrefix(info.Host, "unix://") {
		t.Errorf("Info() = %+v, want host %s and its socket", info, engine.Host())
	}
}
