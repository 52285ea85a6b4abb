package health

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"
)

// patience is how long an address may stay silent: a refusal comes at once.
const patience = time.Second

// Refused returns an error when an address, host and port, refuses connections, as
// a node does until it has opened a Service's port. It returns nil of one that
// stays silent or is unknown here, since clients may know a way that leads there.
func Refused(ctx context.Context, address string) error {
	connection, err := (&net.Dialer{Timeout: patience}).DialContext(ctx, "tcp", address)
	if err == nil {
		_ = connection.Close()
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	return nil
}
