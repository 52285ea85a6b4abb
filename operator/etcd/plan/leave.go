package plan

// leave takes the member that leaves one step further: out of etcd first, then its pod, and
// its claim last. One that is replaced has a new claim at the end, and its old volume stays.
func (p planner) leave() Step {
	ordinal := p.Leaving
	m, listed := p.listed(ordinal)
	switch {
	case listed && m.Learner:
		return Step{Action: Remove, Ordinal: ordinal, ID: m.ID}
	case listed:
		return p.expel(m)
	case p.IDs[ordinal] != "":
		return Step{Action: RecordRemoved, Ordinal: ordinal, ID: p.IDs[ordinal]}
	}
	if ordinal >= p.Replicas && ordinal > p.highest() {
		return p.vacate(ordinal)
	}
	// Its pod stays, also while there are members of higher ordinals.
	claim, exists := p.Claims[ordinal]
	old := exists && claim.UID == p.Claim
	pod, runs := p.Pods[ordinal]
	switch {
	case old && !claim.Retained:
		return Step{Action: Retain, Ordinal: ordinal, UID: claim.UID}
	case old && !claim.Terminating:
		return Step{Action: DeleteClaim, Ordinal: ordinal, UID: claim.UID}
	case runs && pod.Claim == p.Claim && p.Claim != "":
		return Step{Action: DeletePod, Ordinal: ordinal}
	case old:
		return wait("the claim of %s, which was removed from etcd, is terminating", p.name(ordinal))
	}
	return Step{Action: RecordLeft, Ordinal: ordinal}
}

// vacate removes the pod and the claim of a member that is not asked for any more, and that
// etcd does not have.
func (p planner) vacate(ordinal int) Step {
	if p.Size > ordinal {
		return Step{Action: Resize, Ordinal: ordinal, Size: ordinal}
	}
	if step, ok := p.unclaim(ordinal); ok {
		return step
	}
	return Step{Action: RecordLeft, Ordinal: ordinal}
}

// unclaim deletes the claim of an ordinal that has no member and no pod any more.
func (p planner) unclaim(ordinal int) (Step, bool) {
	claim, exists := p.Claims[ordinal]
	_, runs := p.Pods[ordinal]
	switch {
	case runs:
		return wait("the pod of %s, which etcd does not have as a member, is terminating", p.name(ordinal)), true
	case exists && claim.Terminating:
		return wait("the claim of %s, which etcd does not have as a member, is terminating", p.name(ordinal)), true
	case exists && p.abandoned(ordinal) && !claim.Retained:
		return Step{Action: Retain, Ordinal: ordinal, UID: claim.UID}, true
	case exists:
		return Step{Action: DeleteClaim, Ordinal: ordinal, UID: claim.UID}, true
	}
	return Step{}, false
}

// excess removes pods and claims that no member has, once there are as many members as are
// asked for.
func (p planner) excess() (Step, bool) {
	if p.Size != p.Replicas {
		return Step{Action: Resize, Ordinal: None, Size: p.Replicas}, true
	}
	for ordinal := p.Claimed - 1; ordinal >= p.Replicas; ordinal-- {
		if step, ok := p.unclaim(ordinal); ok {
			return step, true
		}
	}
	return Step{Action: RecordClaimed, Ordinal: None, Size: p.Replicas}, p.Claimed != p.Replicas
}

// expel removes a voter from etcd, if it is still to leave and the others are enough.
func (p planner) expel(m Listed) Step {
	why := p.replaced(m.Ordinal)
	if m.Ordinal < p.Replicas && why == "" {
		return Step{Action: RecordStays, Ordinal: m.Ordinal}
	}
	if p.lostBut(m.Ordinal) && p.Lost[m.Ordinal] == "" {
		return Step{Action: RecordStays, Ordinal: m.Ordinal} // one whose data is gone comes first
	}
	if why != "" && why == p.Moves[m.Ordinal] && p.silent(m.Ordinal) != None {
		return Step{Action: RecordStays, Ordinal: m.Ordinal} // it was to move while all others serve
	}
	if why != "" && p.Lost[m.Ordinal] == "" && m.Serves && p.needed(m.Ordinal) {
		return Step{Action: RecordStays, Ordinal: m.Ordinal} // it is all that the servers use
	}
	all, serve := p.voters(m.Ordinal)
	if dead := p.silent(m.Ordinal); why == "" && dead != None {
		// Fewer voters, and one of them dead: that one is replaced first.
		if p.replaced(dead) != "" || !m.Serves {
			return Step{Action: RecordStays, Ordinal: m.Ordinal}
		}
		return wait("%s is removed when %s serves again", p.name(m.Ordinal), p.name(dead))
	}
	switch {
	case all == 0, why == "" && p.Differs != "":
		return Step{Action: RecordStays, Ordinal: m.Ordinal}
	case why == "" && p.Uncompared != "":
		return wait("%s is removed when it is known that all members hold the same data: %s", p.name(m.Ordinal), p.Uncompared)
	case p.Replicas == 1 && all == 1 && !p.Snapshot && why == "":
		return Step{Action: TakeSnapshot, Ordinal: None, Message: "one member has no other copy"}
	case serve < majority(all+1)-boolean(m.Serves) || serve < majority(all):
		return wait("%s is removed when %d of the other %d voters serve", p.name(m.Ordinal), majority(all), all)
	case m.Leads:
		return Step{Action: MoveLeader, Ordinal: m.Ordinal, ID: m.ID}
	}
	return Step{Action: Remove, Ordinal: m.Ordinal, ID: m.ID}
}

// boolean is 1 for true.
func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}
