package jsonrpc_test

import (
	"strings"
	"testing"

	"github.com/dockgate/dockgate/internal/jsonrpc"
)

// Strings are walked over eight bytes at a time: what ends or breaks one must
// be seen at every place in a word.
func TestParseStrings(t *testing.T) {
	for length := range 40 {
		text := strings.Repeat("é", length/2) + strings.Repeat("x", length%2)
		for at := range len(text) + 1 {
			if at < len(text) && text[at]&0xC0 == 0x80 { // inside a character
				continue
			}
			for _, tt := range []struct {
				insert string
				ok     bool
			}{
				{"", true},
				{`\"`, true},
				{`\\`, true},
				{`\u2028`, true},
				{"\x7f", true},
				{" ", true},
				{"\x1f", false},
				{"\x00", false},
				{"\t", false},
				{`\x`, false},
				{`"`, false},
			} {
				value := `"` + text[:at] + tt.insert + text[at:] + `"`
				_, err := jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":1,"result":` + value + `}`))
				if (err == nil) != tt.ok {
					t.Errorf("Parse with the result %s = %v, want it accepted: %t", value, err, tt.ok)
				}
			}
		}
	}
}
