package framework

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// claimedPerProcess is more than one block has.
const claimedPerProcess = blockSize + blockSize/2

// TestPortsOfProcesses has processes claim ports and addresses at the same time: no two of
// them may be given the same, while both live. What a process had is free when it was killed.
func TestPortsOfProcesses(t *testing.T) {
	if os.Getenv("CLAIM_PORTS") != "" {
		claimUntilInputEnds(t)
		return
	}
	owners := map[string]int{}
	var processes []*claimant
	for range 4 {
		processes = append(processes, startClaimant(t))
	}
	for i, p := range processes {
		for _, claimed := range p.read() {
			if owner, taken := owners[claimed]; taken {
				t.Errorf("processes %d and %d were both given %s", owner, i, claimed)
			}
			owners[claimed] = i
		}
	}
	first := processes[0]
	_ = first.cmd.Process.Kill()
	_ = first.cmd.Wait() // its error is that of the kill
	free := false
	for _, claimed := range startClaimant(t).read() {
		owner, taken := owners[claimed]
		if taken && owner != 0 {
			t.Errorf("a new process was given %s, which process %d has", claimed, owner)
		}
		free = free || taken
	}
	if !free {
		t.Error("a new process was given nothing of what a killed process had")
	}
}

// claimUntilInputEnds prints what this process claims, and keeps it until it is told to end.
func claimUntilInputEnds(t *testing.T) {
	t.Helper()
	for range claimedPerProcess {
		fmt.Printf("claimed %d\nclaimed %s\n", FreePort(t), LoopbackIP(t))
	}
	_, _ = bufio.NewReader(os.Stdin).ReadByte() // there is none: the input ends
}

// claimant is another process of this test.
type claimant struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

func startClaimant(t *testing.T) *claimant {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$") //nolint:gosec // this program
	cmd.Env = append(os.Environ(), "CLAIM_PORTS=yes")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Wait() // it may have been killed
	})
	return &claimant{t, cmd, bufio.NewScanner(stdout)}
}

// read waits until the process has claimed all that it is to claim.
func (c *claimant) read() (claimed []string) {
	c.t.Helper()
	for len(claimed) < 2*claimedPerProcess && c.lines.Scan() {
		if port, is := strings.CutPrefix(c.lines.Text(), "claimed "); is {
			claimed = append(claimed, port)
		}
	}
	if len(claimed) < 2*claimedPerProcess {
		c.t.Fatalf("a process claimed %d ports and addresses of %d", len(claimed), 2*claimedPerProcess)
	}
	return claimed
}
