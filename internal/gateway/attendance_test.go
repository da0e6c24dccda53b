package gateway_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dockgate/dockgate/internal/gateway"
)

// A session ends when it was not used for as long as it may, however long a
// request of it takes.
func TestAttendance(t *testing.T) {
	const timeout = time.Minute
	enter, leave := (*gateway.Attendance).Enter, (*gateway.Attendance).Leave
	tests := []struct {
		name  string
		after []func(*gateway.Attendance) // each after most of the timeout
		ends  bool
	}{
		{"its first request takes long", nil, false},
		{"unused", []func(*gateway.Attendance){leave}, true},
		{"a request in time", []func(*gateway.Attendance){leave, enter}, false},
		{"a request that has ended", []func(*gateway.Attendance){leave, enter, leave}, true},
		{"one of two requests", []func(*gateway.Attendance){enter, leave}, false},
		{"two requests that have ended", []func(*gateway.Attendance){enter, leave, leave}, true},
		{"ended by its client", []func(*gateway.Attendance){leave, (*gateway.Attendance).End}, false},
		{"ended under a request", []func(*gateway.Attendance){(*gateway.Attendance).End, leave}, false},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			ended := false
			var a gateway.Attendance
			a.Begin(timeout, func() { ended = true })
			for _, next := range tt.after {
				<-time.After(timeout - time.Second)
				if synctest.Wait(); ended {
					t.Fatalf("%s: ended too soon", tt.name)
				}
				next(&a)
			}
			<-time.After(timeout + time.Second)
			if synctest.Wait(); ended != tt.ends {
				t.Errorf("%s: ended = %t, want %t", tt.name, ended, tt.ends)
			}
		})
	}
}
