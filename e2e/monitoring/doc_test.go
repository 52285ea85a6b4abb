// Package monitoring has the story of what a real operator and real servers tell
// of themselves: all that docs/reference/metrics.md promises, which is all that alerts and
// the dashboard ask for, and nothing of a registry that is gone.
package monitoring
