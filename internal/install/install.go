// Package install is how a program gets into the container of an image that is not its own:
// an init container copies it to a volume. Neither image has a shell.
package install

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

// Command returns the command of the init container that brings a program to where the
// other containers of its Pod find it.
func Command(name string) *cobra.Command {
	return &cobra.Command{
		Use:   "install DIRECTORY",
		Short: "Copy this program to a directory",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			self, err := os.Executable()
			if err != nil {
				return err
			}
			return copyProgram(self, filepath.Join(args[0], name))
		},
	}
}

// copyProgram copies a program. Under the name of the copy there is always a
// whole one, or what was there before.
func copyProgram(from, to string) (err error) {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	part, err := os.CreateTemp(filepath.Dir(to), ".part-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("copy %s to %s: %w", from, to, err), os.Remove(part.Name()))
		}
	}()
	_, err = io.Copy(part, source)
	if err := errors.Join(err, part.Chmod(0o755), part.Close()); err != nil {
		return err
	}
	return os.Rename(part.Name(), to)
}
