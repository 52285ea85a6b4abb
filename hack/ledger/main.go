// Command ledger runs what "make test-full" consists of, part by part, and keeps in
// test/ledger.jsonl what each has shown:
//
//	ledger list            print the parts: when each passed last, and what it waits for
//	ledger next MINUTES    run those that need it most, as many as fit
//	ledger run PART...     run these
//	ledger all             run all that have not passed with what they depend on
//	ledger old COMMITS     print the parts that did not pass in that many commits
//
// It is called at the root of the checkout. A row is for a commit, so what is run must be
// committed; the rows are to be committed afterwards.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := command(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("ledger list, next MINUTES, run PART..., all or old COMMITS; see the comment at the top of hack/ledger/main.go")

func command(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return errUsage
	}
	verb, args := args[0], args[1:]
	numbers := map[string]bool{"next": true, "old": true}
	number := 0
	if numbers[verb] {
		if len(args) != 1 {
			return errUsage
		}
		var err error
		if number, err = strconv.Atoi(args[0]); err != nil || number <= 0 {
			return fmt.Errorf("ledger %s %q: that must be a number above 0", verb, args[0])
		}
	}
	states, err := readStates(ctx, ".", parts())
	if err != nil {
		return err
	}
	switch verb {
	case "list":
		return list(out, states)
	case "old":
		return old(out, states, number)
	case "next":
		return runAll(ctx, ".", fitting(states, number), out)
	case "all":
		return runAll(ctx, ".", waiting(states), out)
	case "run":
		chosen, err := named(states, args)
		if err != nil {
			return err
		}
		return runAll(ctx, ".", chosen, out)
	}
	return errUsage
}
