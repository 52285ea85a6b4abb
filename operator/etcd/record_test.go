package etcd

import (
	"errors"
	"maps"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/generation"
)

// TestNewRecord is about an etcd without a record: only where there never was data may
// it form as a new cluster.
func TestNewRecord(t *testing.T) {
	known := Identity{ClusterID: "c", Members: map[string]string{"fleet-etcd-0": "a0", "fleet-etcd-1": ""}}
	for _, test := range []struct {
		reason  string
		known   Identity
		hasData bool
		state   string
		want    Identity
	}{
		{"there never was anything", Identity{}, false, contract.StateNew, Identity{Members: map[string]string{}}},
		{"volumes without a record have data", Identity{}, true, contract.StateExisting, Identity{Members: map[string]string{}}},
		{"members without a cluster tell nothing", Identity{Members: known.Members}, false, contract.StateNew, Identity{Members: map[string]string{}}},
		{"the record was lost, and the IDs are known", known, false, contract.StateExisting, Identity{ClusterID: "c", Members: map[string]string{"fleet-etcd-0": "a0"}}},
		{"that of the cluster only", Identity{ClusterID: "c"}, true, contract.StateExisting, Identity{ClusterID: "c", Members: map[string]string{}}},
	} {
		want := &Record{InitialClusterState: test.state, Replicas: 3, Target: 3, Claimed: 3, Endpoints: 3, CA: "f", Identity: test.want}
		if got := NewRecord(3, "f", test.known, test.hasData); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v", test.reason, got)
		}
	}
}

// complete is the data of a record that has everything.
func complete() map[string]string {
	return map[string]string{
		"initial-cluster-state": "existing", "cluster-id": "c", "member-id.fleet-etcd-0": "a0", "member-id.fleet-etcd-1": "a1", "replicas": "2", "ca": "f",
		"release": "v0.2.0", "etcd-version": "v3.7.3", "etcd-release": "v0.3.0", "joining": "fleet-etcd-1", "members": "fleet-etcd-0,fleet-etcd-1",
		"target": "3", "endpoints": "1", "kept-volumes": "pv-a=1=Delete=c,pv-b=2=Delete=d", "recreating": "s",
	}
}

// TestParseRecord spells the keys out: those of earlier operators must be read, and the
// guards of all releases read what is written.
func TestParseRecord(t *testing.T) {
	want := &Record{InitialClusterState: "existing", Replicas: 2, Target: 3, Claimed: 2, Endpoints: 1, CA: "f", Release: "v0.2.0", EtcdVersion: "v3.7.3", EtcdRelease: "v0.3.0", Joining: "fleet-etcd-1", Kept: []KeptVolume{{"pv-a", "1", "Delete", "c"}, {"pv-b", "2", "Delete", "d"}}, Recreating: "s",
		Names: []string{"fleet-etcd-0", "fleet-etcd-1"}, Identity: Identity{ClusterID: "c", Members: map[string]string{"fleet-etcd-0": "a0", "fleet-etcd-1": "a1"}}}
	data := complete()
	data["note"], data["member-id.fleet-etcd-2"] = "a person's", ""
	got, err := ParseRecord(data)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v, %v", got, err)
	}
	if got := got.Data(nil); !maps.Equal(got, complete()) {
		t.Errorf("written is %v", got)
	}
	for _, test := range []struct {
		reason, key, value, says string
	}{
		{"no state", "initial-cluster-state", "", `set it to "existing", unless this etcd never formed (then "new")`},
		{"another state", "initial-cluster-state", "Existing", `initial-cluster-state is "Existing"`},
		{"an ID that etcdctl would not print", "cluster-id", "0xc", "set it to the one in status.etcd.clusterID"},
		{"in capital letters", "cluster-id", "C", "status.etcd.clusterID"},
		{"no member has the ID 0", "member-id.fleet-etcd-1", "0", "member-id.fleet-etcd-1 is \"0\" and not the ID of a member: set it to the one in status.etcd.members"},
		{"a number of members that is none", "replicas", "three", "set it to that of the claims data-...-etcd-N"},
		{"none", "replicas", "", "not a number of members"},
		{"more than any etcd has", "replicas", "10", "not a number of members"},
		{"more than are counted", "replicas", "2147483648", "not a number of members"},
		{"zero of them", "replicas", "0", "not a number of members"},
		{"fewer names than members", "members", "fleet-etcd-0", `members is "fleet-etcd-0" and not the names of 2 members: correct the key of the two (members, replicas) that was changed`},
		{"a name twice", "members", "fleet-etcd-0,fleet-etcd-0", "not the names of 2 members"},
		{"an empty name", "members", ",fleet-etcd-1", "not the names of 2 members"},
	} {
		data := complete()
		data[test.key] = test.value
		if got, err := ParseRecord(data); err == nil || got != nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %+v, %v", test.reason, got, err)
		}
	}
}

// TestRecordData leaves out what is not known, but for what the guard needs, and what
// takes the place of something.
func TestRecordData(t *testing.T) {
	first := &Record{InitialClusterState: "new", Replicas: 3, CA: "f"}
	want := map[string]string{"initial-cluster-state": "new", "cluster-id": "", "replicas": "3", "ca": "f"}
	if got := first.Data(nil); !maps.Equal(got, want) {
		t.Errorf("the first one: %v", got)
	}
	if got := first.Data(&Record{}); !maps.Equal(got, want) {
		t.Errorf("after one in which nobody joins: %v", got)
	}
	maps.Copy(want, map[string]string{"joining": "", "member-id.fleet-etcd-1": "", "target": ""})
	if got := first.Data(&Record{Joining: "fleet-etcd-1", Target: 5, Identity: Identity{Members: map[string]string{"fleet-etcd-1": "a1"}}}); !maps.Equal(got, want) {
		t.Errorf("a member that has joined and left: %v", got)
	}
}

// FuzzParseRecord holds the reader of the record to what is written from it, and
// to never taking a damaged record for one of an etcd that never was.
func FuzzParseRecord(f *testing.F) {
	f.Add("new", "", "", "3", "", "")
	f.Add("existing", "8e9e05c52164694d", "cdf818194e3a8c32", "3", "fleet-etcd-1", "v0.4.0")
	f.Add("existing", "0xc1", "C1", "-1", "fleet-etcd-0", "")
	f.Add("", "0", "", "", "", "")
	f.Add("existing\n", "c1\n", " 1", "+3", "", "")
	f.Fuzz(func(t *testing.T, state, cluster, member, replicas, joining, release string) {
		data := map[string]string{contract.RecordState: state, contract.RecordCluster: cluster, contract.RecordMember + "a": member, keyReplicas: replicas, contract.RecordJoining: joining, keyEtcdRelease: release}
		r, err := ParseRecord(data)
		if err != nil {
			return
		}
		if r.InitialClusterState != contract.StateNew && r.InitialClusterState != contract.StateExisting || r.ClusterID != cluster || r.Members["a"] != member || r.Replicas < 1 || r.Replicas > mostMembers || r.Joining != joining || r.EtcdRelease != release {
			t.Errorf("%v is read as %+v", data, r)
		}
		if again, err := ParseRecord(r.Data(nil)); err != nil || !reflect.DeepEqual(again, r) {
			t.Errorf("%v is written as %v and read as %+v, %v", data, r.Data(nil), again, err)
		}
	})
}

// TestRecordCheck finds out that a registry is given the data of another one.
func TestRecordCheck(t *testing.T) {
	for reason, test := range map[string]struct {
		ca   string
		want error
	}{
		"as it was recorded": {"f", nil},
		"another CA":         {"g", ErrCADiffers},
		"no CA":              {"", ErrCADiffers},
	} {
		if err := (&Record{Replicas: 3, CA: "f"}).Check(test.ca); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

// TestLearn is about what is recorded, and when: never what was merely tried, and never
// less than before.
func TestLearn(t *testing.T) {
	ids := map[string]string{"e0": "a0", "e1": "a1"}
	both := []Member{{Name: "e0", ID: "a0", ClusterID: "c"}, {Name: "e1", ID: "a1", ClusterID: "c"}}
	list := []Listed{{ID: "a0", Name: "e0"}, {ID: "a1", Name: "e1"}}
	state := State{Members: both, List: list}
	one := State{Members: []Member{both[0], {Name: "e1", Err: errors.New("down")}}, List: list}
	learner := State{Members: both, List: []Listed{list[0], {ID: "a1", Name: "e1", Learner: true}}}
	recorded := Record{InitialClusterState: contract.StateExisting, Replicas: 2, CA: "f", Release: "v0.3.0", EtcdVersion: "v3.7.2", EtcdRelease: "v0.3.0", Identity: Identity{ClusterID: "c", Members: ids}}
	with := func(change func(*Record)) Record {
		r := recorded
		change(&r)
		return r
	}
	forming := with(func(r *Record) {
		r.InitialClusterState, r.Identity = contract.StateNew, Identity{Members: map[string]string{}}
	})
	partial := with(func(r *Record) { r.Members = map[string]string{"e0": "a0"} })
	joining := with(func(r *Record) { r.Joining = "e1" })
	for _, test := range []struct {
		reason string
		before Record
		seen   Observation
		want   Record
	}{
		{"all is known", recorded, Observation{State: state, Versions: []string{"v3.7.2", ""}}, recorded},
		{"etcd has formed", forming, Observation{State: state}, recorded},
		{"a member has not said who it is", forming, Observation{State: one}, forming},
		{"nothing answers", recorded, Observation{}, recorded},
		{"a record that lacks a member", partial, Observation{State: state}, recorded},
		{"another cluster is for Check to find, not to record", recorded, Observation{State: State{
			Members: []Member{{Name: "e0", ID: "b0", ClusterID: "d"}, {Name: "e1", ID: "b1", ClusterID: "d"}}, List: []Listed{{ID: "b0", Name: "e0"}, {ID: "b1", Name: "e1"}}}}, recorded},
		{"a newer etcd", recorded, Observation{State: one, Versions: []string{"v3.7.10", "v3.7.3"}}, with(func(r *Record) { r.EtcdVersion = "v3.7.10" })},
		{"an older one", recorded, Observation{State: one, Versions: []string{"v3.6.14"}}, recorded},
		{"no pod is of the new release yet", recorded, Observation{State: state, Release: "v0.4.0"}, recorded},
		{"the first one that is does not start", recorded, Observation{State: one, Current: []string{"e1"}, Release: "v0.4.0"}, recorded},
		{"it has started", recorded, Observation{State: state, Current: []string{"e1"}, Release: "v0.4.0"}, with(func(r *Record) { r.EtcdRelease = "v0.4.0" })},
		{"a member that joins is a learner", joining, Observation{State: learner}, joining},
		{"and is promoted: the operator that added it says when it has joined", joining, Observation{State: state}, joining},
		{"one that leaves is not recorded again", with(func(r *Record) { r.Leaving, r.Members = "e1", partial.Members }), Observation{State: state}, with(func(r *Record) { r.Leaving, r.Members = "e1", partial.Members })},
	} {
		before := test.before
		before.Members = maps.Clone(before.Members)
		got, learned := before.Learn(test.seen)
		if !reflect.DeepEqual(*got, test.want) || learned != !reflect.DeepEqual(test.before, test.want) {
			t.Errorf("%s: learned %t: %+v", test.reason, learned, got)
		}
		if !reflect.DeepEqual(before, test.before) {
			t.Errorf("%s: the record itself is changed: %+v", test.reason, before)
		}
	}
}

// TestRecordOfCAs writes which generations of the CA are in use, with the keys of both, and
// nothing of a CA that was never rotated.
func TestRecordOfCAs(t *testing.T) {
	plain := &Record{InitialClusterState: contract.StateNew, Replicas: 1, CA: "f"}
	for key := range plain.Data(nil) {
		if strings.HasPrefix(key, keyCA+"-") {
			t.Errorf("a CA that was never rotated has %s", key)
		}
	}
	rotated := *plain
	rotated.CA, rotated.AlsoCA, rotated.Generations = "g", "f", generation.InUse{Signing: 2, Also: 1}
	read, err := ParseRecord(rotated.Data(plain))
	if err != nil || read.CA != "g" || read.AlsoCA != "f" || read.Generations != rotated.Generations {
		t.Errorf("%+v, %v", read, err)
	}
	dropped := rotated
	dropped.AlsoCA, dropped.Generations.Also = "", 0
	data := dropped.Data(&rotated)
	if data[keyAlsoCA] != "" || data[keyGenerations] != "2" {
		t.Errorf("after it was dropped: %v", data)
	}
	if _, present := data[keyAlsoCA]; !present {
		t.Error("what is dropped is not written as empty, and would stay")
	}
	data[keyGenerations] = "both"
	if _, err := ParseRecord(data); err == nil || !strings.Contains(err.Error(), `ca-generations is "both"`) {
		t.Errorf("nonsense: %v", err)
	}
}

// TestKept reads volumes that were kept whatever a person has made of the key, and records no
// more of them than a ConfigMap holds.
func TestKept(t *testing.T) {
	for text, want := range map[string][]KeptVolume{
		"": nil, ",": nil, "pv": nil, "=1": nil, "pv=1": nil, "pv=1=Delete=": nil, "pv=1=Delete=c=d": nil, "pv-a,pv-b=2=Delete=c,": {{"pv-b", "2", "Delete", "c"}},
	} {
		data := complete()
		data["kept-volumes"] = text
		got, err := ParseRecord(data)
		if err != nil || !reflect.DeepEqual(got.Kept, want) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	record := &Record{}
	for i := range 2 * mostKept {
		record.Kept = append(record.Kept, KeptVolume{"pv-" + strconv.Itoa(i), "1", "Delete", "c"})
	}
	if got := parseKept(record.Data(nil)["kept-volumes"]); len(got) != mostKept || got[mostKept-1] != record.Kept[2*mostKept-1] {
		t.Errorf("of %d volumes, %d are recorded", len(record.Kept), len(got))
	}
}
