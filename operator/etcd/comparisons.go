package etcd

import (
	"errors"
	"sync"
	"time"
)

// How long the answer to a comparison of the members' data counts: one that says who holds
// which data, and one that was not to be had, as of members that did not answer in time.
const (
	comparedFor = 5 * time.Minute
	failedFor   = 30 * time.Second
)

// Compared is what the data of an etcd's members is compared for.
type Compared struct {
	// Etcd is any name of it.
	Etcd string
	// Member may hold other data than all others, and ID is its ID: a member that takes its
	// place has another one. Both are empty where all members are compared.
	Member, ID string
	// Alarm is the one that is raised, by State.Raised: what was the same before it was raised
	// may differ since, and to disarm it on that word would let members take writes that differ.
	Alarm Alarm
}

// Comparisons remembers what comparisons of the members' data said, so that members which wait
// for something do not scan all their data in each reconcile. What is forgotten when the
// operator ends is asked again. The zero value is ready to use.
type Comparisons struct {
	lock sync.Mutex
	of   map[Compared]comparison
}

// comparison is an answer, and when it was asked for.
type comparison struct {
	asked time.Time
	err   error
}

// Outlier returns what ask does, which is Access.Outlier, or what it returned a short while
// ago.
func (c *Comparisons) Outlier(of Compared, now time.Time, ask func() error) error {
	c.lock.Lock()
	last, known := c.of[of]
	c.lock.Unlock()
	if age := now.Sub(last.asked); known && age >= 0 && age < last.counts() {
		return last.err
	}
	last = comparison{now, ask()}
	c.lock.Lock()
	defer c.lock.Unlock()
	if c.of == nil {
		c.of = map[Compared]comparison{}
	}
	for other, was := range c.of {
		if age := now.Sub(was.asked); age < 0 || age >= was.counts() {
			delete(c.of, other) // so that there are never more than there are members
		}
	}
	c.of[of] = last
	return last.err
}

// counts returns for how long an answer does.
func (c comparison) counts() time.Duration {
	var differs *DataDiffers
	var same *DataSame
	if c.err == nil || errors.As(c.err, &differs) || errors.As(c.err, &same) {
		return comparedFor
	}
	return failedFor
}

// Forget drops what is known of an etcd.
func (c *Comparisons) Forget(name string) {
	c.lock.Lock()
	defer c.lock.Unlock()
	for of := range c.of {
		if of.Etcd == name {
			delete(c.of, of)
		}
	}
}
