// RUN: fuse-pointwise | fuse-pointwise.max-nodes=2
// Groups that read each other's results: all three are made.
graph @g(%x: f32[4]) -> (%f) {
  %a: f32[4] = Exp(%x)
  %b: f32[4] = Neg(%a)
  %c: f32[4] = Tanh(%b)
  %d: f32[4] = Abs(%c)
  %e: f32[4] = Sqrt(%d)
  %f: f32[4] = Relu(%e)
}
// EXPECT:
graph @g(%x: f32[4]) -> (%f) {
  %b: f32[4] = regie.Pointwise(%x) region @body(%0: f32[]) -> (%2) {
    %1: f32[] = Exp(%0)
    %2: f32[] = Neg(%1)
  }
  %d: f32[4] = regie.Pointwise(%b) region @body(%3: f32[]) -> (%5) {
    %4: f32[] = Tanh(%3)
    %5: f32[] = Abs(%4)
  }
  %f: f32[4] = regie.Pointwise(%d) region @body(%6: f32[]) -> (%8) {
    %7: f32[] = Sqrt(%6)
    %8: f32[] = Relu(%7)
  }
}
