// RUN: place-by-priority, schedule-on-streams | target=host_cpu
graph @g(%x: f32[2,4]) -> (%y) {
  %y: f32[2,4] = Relu(%x)
}
// FAIL: needs 'scheduled'
