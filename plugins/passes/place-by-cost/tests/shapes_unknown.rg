// RUN: place-by-cost
graph @g(%x: f32[2,4]) -> (%y) {
  %y = Relu(%x)
}
// FAIL: needs 'shapes-known'
