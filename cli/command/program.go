package command

import "strings"

// ProgramName returns the name by which a program is found in $PATH, of the path of one: a path
// that is right on one computer is not on another one.
func ProgramName(path string) string {
	return strings.TrimSuffix(path[strings.LastIndexAny(path, `/\`)+1:], ".exe")
}
