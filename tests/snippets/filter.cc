// What weir/filter/README.md takes as given.

void snippet() {
  // SNIPPET
}
