// RUN: fuse-pointwise
// %a and %c are apart, as the product lies between them on a path; %c and %d are one.
graph @g(%x: f32[4,4], %w: f32[4,4]) -> (%d) {
  %a: f32[4,4] = Tanh(%x)
  %m: f32[4,4] = MatMul(%a, %w)
  %c: f32[4,4] = Add(%m, %a)
  %d: f32[4,4] = Relu(%c)
}
// EXPECT:
graph @g(%x: f32[4,4], %w: f32[4,4]) -> (%d) {
  %a: f32[4,4] = Tanh(%x)
  %m: f32[4,4] = MatMul(%a, %w)
  %d: f32[4,4] = regie.Pointwise(%m, %a) region @body(%0: f32[], %1: f32[]) -> (%3) {
    %2: f32[] = Add(%0, %1)
    %3: f32[] = Relu(%2)
  }
}
