// Package promtool has no code but tests: they try the alerts, the dashboard and
// the scraping of manifests/monitoring with Prometheus' own programs and
// libraries, and compare them with docs/reference/metrics.md and docs/reference/alerts.md.
// testdata/ has the series that alerts are tried on, as promtool takes them.
// TestServed is run by e2e/integration, with what it has scraped.
package promtool
