// RUN: infer-shapes
graph @g(%x: f32[2,3], %z: f32[2,4]) -> (%y) {
  %y = Add(%x, %z) @name("sum")
}
// FAIL: node 'sum' (Add)
