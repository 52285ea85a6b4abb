// Package project tests the files in which the project presents itself to programs of
// others: to GitHub, to Artifact Hub, and to what reads SECURITY-INSIGHTS.yml.
package project
