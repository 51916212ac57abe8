// What weir/scheduler/README.md takes as given.

struct Store {
  bool delete_some(int rows);
};

void snippet(Store& store) {
  // SNIPPET
}
