package diagnose

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// logLine is what of a line of a log in JSON, as etcd writes it, says what happened.
type logLine struct {
	Level string
	Text  string `json:"msg"`
	Error any
}

// failure reports whether the line is about one.
func (l logLine) failure() bool {
	return slices.Contains([]string{"error", "dpanic", "panic", "fatal"}, l.Level)
}

func (l logLine) String() string {
	if l.Error == nil {
		return l.Text
	}
	return fmt.Sprintf("%s: %v", l.Text, l.Error)
}

// logged returns what the end of a log says that is in JSON: of each line the message and
// the error, without the stack trace, which is long and comes last, where the cause would
// otherwise be cut off; and only the failures, if there are any. What is not in JSON, such as
// the trace of a panic, stays as it is.
func logged(text string) string {
	var all, failures []string
	parsed := 0
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		var l logLine
		switch err := json.Unmarshal([]byte(line), &l); {
		case err == nil && l.Text != "":
			parsed++
			all = append(all, l.String())
			if l.failure() {
				failures = append(failures, l.String())
			}
		case i == 0 && strings.HasSuffix(line, "}"): // kubelet has cut off its beginning
		default:
			all, failures = append(all, line), append(failures, line)
		}
	}
	switch {
	case parsed == 0:
		return text
	case len(failures) > 0:
		return strings.Join(failures, "\n")
	}
	return strings.Join(all, "\n")
}
