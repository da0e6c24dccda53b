package remote_test

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain looks for goroutines that nobody waited for. The SDK's servers keep
// those of sessions that nobody ended, as where the test cuts a server off.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/modelcontextprotocol/go-sdk/mcp.(*streamableServerConn).Read"))
}
