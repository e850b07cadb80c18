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
graph @g(%x: f32[2,8], %y: f32[2,8]) -> (%a, %d, %e) {
  %axes: const i64[1] = [1]
  %a: f32[2,8], %c: f32[2,8], %d: f32[2,8] = regie.Pointwise(%x, %y) region @body(%0: f32[], %1: f32[]) -> (%2, %4, %5) {
    %2: f32[] = Add(%0, %1)
    %3: f32[] = Tanh(%2)
    %4: f32[] = Mul(%3, %3)
    %5: f32[] = Sub(%4, %2)
  }
  %e: f32[2,1] = ReduceSum(%c, %axes) {keepdims = 1}
}
