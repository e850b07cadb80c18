// RUN: fuse-pointwise
// %a is an output, %c is read by another operator behind the group: both become results. %b is read inside only.
graph @g(%x: f32[2,8], %y: f32[2,8]) -> (%a, %d, %e) {
  %a: f32[2,8] = Add(%x, %y)
  %b: f32[2,8] = Tanh(%a)
  %c: f32[2,8] = Mul(%b, %b)
  %d: f32[2,8] = Sub(%c, %a)
  %axes: const i64[1] = [1]
  %e: f32[2,1] = ReduceSum(%c, %axes) {keepdims = 1}
}
// EXPECT:
