package contract

import (
	"testing"
	"time"
)

func TestDefragmentRequest(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for text, want := range map[string]DefragmentRequest{
		"":                                  {},
		"2030-01-02T03:04:05Z":              {Time: at},
		"2030-01-02T03:04:05Z,fleet-etcd-1": {Time: at, Member: "fleet-etcd-1"},
	} {
		got, err := ParseDefragmentRequest(text)
		if err != nil || !got.Time.Equal(want.Time) || got.Member != want.Member || text != "" && got.String() != text {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	if got, err := ParseDefragmentRequest(" 2030-01-02T05:04:05+02:00 , fleet-etcd-1 "); err != nil || got.String() != "2030-01-02T03:04:05Z,fleet-etcd-1" {
		t.Errorf("%+v, %v", got, err)
	}
	for _, text := range []string{"now", "true", "fleet-etcd-1", "2030-01-02", "2030-01-02T03:04:05Z,", ","} {
		if got, err := ParseDefragmentRequest(text); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}
