package secret_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/dockgate/dockgate/internal/secret"
)

const canary = "c4nary-5ecret"

func TestValueNeverPrints(t *testing.T) {
	type holder struct {
		Value   secret.Value
		Pointer *secret.Value
		hidden  secret.Value
		Any     any
		List    []secret.Value
		Map     map[string]secret.Value
		Found   secret.Found
	}
	value := secret.NewValue(canary)
	held := holder{
		value, &value, value, value,
		[]secret.Value{value},
		map[string]secret.Value{"k": value},
		secret.Found{Ref: secret.Ref{Name: "n", Env: "E"}, Value: value, Source: secret.Environment},
	}
	_ = held.hidden

	var printed []string
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T", "%10.3s", "%08b", "%!"} {
		for _, v := range []any{value, &value, held, &held, []any{value}, map[string]any{"k": held}} {
			printed = append(printed, fmt.Sprintf(verb, v))
		}
	}
	printed = append(printed, fmt.Sprint(value, &held), fmt.Sprintln(held), value.String(), value.GoString())

	for _, v := range []any{value, &value, held, &held, map[string]any{"k": value}} {
		encoded, err := json.Marshal(v)
		if err != nil {
			t.Fatalf("Marshal(%T): %v", v, err)
		}
		printed = append(printed, string(encoded))
	}

	var text, lines bytes.Buffer
	for _, handler := range []slog.Handler{
		slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug}),
		slog.NewJSONHandler(&lines, &slog.HandlerOptions{Level: slog.LevelDebug}),
	} {
		logger := slog.New(handler).With("with", value)
		logger.Debug("value", "value", value, "pointer", &value, "held", held, slog.Group("group", "value", value))
	}
	printed = append(printed, text.String(), lines.String())

	err := fmt.Errorf("start: %w", fmt.Errorf("use %v", value))
	printed = append(printed, err.Error(), errors.Join(err, fmt.Errorf("%+v", held)).Error())

	for _, line := range printed {
		for _, form := range []string{canary, strings.ToUpper(canary), fmt.Sprintf("%x", canary), fmt.Sprintf("%X", canary), fmt.Sprintf("%d", []byte(canary))} {
			if strings.Contains(line, form) {
				t.Errorf("printed the secret: %s", line)
			}
		}
	}
	if got := fmt.Sprint(value); got != secret.Mask {
		t.Errorf("Sprint(value) = %q, want %q", got, secret.Mask)
	}
	if got := value.Reveal(); got != canary {
		t.Errorf("Reveal() = %q, want %q", got, canary)
	}
	if !value.Equal(secret.NewValue(canary)) || value.Equal(secret.Value{}) {
		t.Error("Equal() does not tell secrets apart")
	}
	if (secret.Value{}).Set() || !value.Set() {
		t.Error("Set() does not tell an absent value from a present one")
	}
}
