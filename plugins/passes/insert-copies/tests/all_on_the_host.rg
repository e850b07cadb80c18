// RUN: place-by-priority, insert-copies
graph @g(%x: f32[2,4]) -> (%y) {
  %k: const f32[4] = [1.0, 2.0, 3.0, 4.0]
  %r: f32[2,4] = Relu(%x)
  %y: f32[2,4] = Mul(%r, %k)
}
// EXPECT:
graph @g(%x: f32[2,4] @space(0)) -> (%y) on "null" = "null0" 1 space 1, "cpu" = "cpu" 0 space 0 {
  %k: const f32[4] = [1.0, 2.0, 3.0, 4.0]
  %r: f32[2,4] @space(0) = Relu(%x) @engine("cpu")
  %y: f32[2,4] @space(0) = Mul(%r, %k) @engine("cpu")
}
