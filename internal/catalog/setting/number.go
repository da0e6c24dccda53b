package setting

import (
	"encoding/json"
)

// plainNumbers returns a copy of a decoded JSON value in which every
// [json.Number], which the validator takes for text, is a number.
func plainNumbers(value any) any {
	switch value := value.(type) {
	case json.Number:
		if whole, err := value.Int64(); err == nil {
			return whole
		}
		if real, err := value.Float64(); err == nil {
			return real
		}
		return value
	case map[string]any:
		plain := make(map[string]any, len(value))
		for name, member := range value {
			plain[name] = plainNumbers(member)
		}
		return plain
	case []any:
		plain := make([]any, len(value))
		for i, element := range value {
			plain[i] = plainNumbers(element)
		}
		return plain
	default:
		return value
	}
}
