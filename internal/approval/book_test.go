package approval_test

import (
	"testing"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/approval/approvaltest"
)

func TestMemory(t *testing.T) {
	approvaltest.Run(t, func(*testing.T) (one, two approval.Store) {
		shared := &approvaltest.Memory{}
		return shared, shared
	})
}
