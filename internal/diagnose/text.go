package diagnose

import (
	"fmt"
	"strings"
)

// Join joins problems, and counts those after the third, which would only repeat
// what the first ones say.
func Join(problems []string) string {
	const most = 3
	if len(problems) <= most {
		return strings.Join(problems, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(problems[:most], "; "), len(problems)-most)
}

// sentence ends a text with a period.
func sentence(text string) string {
	return strings.TrimRight(text, ". ") + "."
}

// lastLines keeps the end of a container's or an event's message, where the cause
// usually is, in one line of at most 403 bytes.
func lastLines(message string) string {
	const most = 400
	message = strings.TrimSpace(message)
	if len(message) > most {
		message = "..." + message[len(message)-most:]
	}
	return strings.ReplaceAll(message, "\n", " | ")
}
