package consent_test

import (
	"testing"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/approval/approvaltest"
)

func TestDesk(t *testing.T) {
	approvaltest.RunDesk(t, func(*testing.T) (one, two approval.Store) {
		shared := &approvaltest.Memory{}
		return shared, shared
	})
}
