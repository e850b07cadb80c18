// RUN: cancel-transposes, remove-dead, fold-constants
// NCHW as NHWC and back, with a bias by channel and a number between.
graph @g(%x: f32[N,3,4,5]) -> (%y) {
  %bias: const f32[3] = [1.0, 2.0, 3.0]
  %two: const f32[] = 2.0
  %a: f32[N,4,5,3] = Transpose(%x) {perm = [0, 2, 3, 1]}
  %b: f32[N,4,5,3] = Add(%a, %bias)
  %c: f32[N,4,5,3] = Mul(%two, %b)
  %d: f32[N,4,5,3] = Relu(%c)
  %y: f32[N,3,4,5] = Transpose(%d) {perm = [0, 3, 1, 2]}
}
// EXPECT:
graph @g(%x: f32[N,3,4,5]) -> (%3 as "y") {
  %two: const f32[] = 2.0
  %0: const f32[1,3,1,1] = [1.0, 2.0, 3.0]
  %1: f32[N,3,4,5] = Add(%x, %0)
  %2: f32[N,3,4,5] = Mul(%two, %1)
  %3: f32[N,3,4,5] = Relu(%2)
}
