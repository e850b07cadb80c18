// RUN: fuse-pointwise | fuse-pointwise.max-nodes=3 fuse-pointwise.max-operands=2
// Seven operators in a row: three, two (the third reads a third tensor), two.
graph @g(%x: f32[4], %y: f32[4], %z: f32[4]) -> (%g7) {
  %g1: f32[4] = Add(%x, %y)
  %g2: f32[4] = Relu(%g1)
  %g3: f32[4] = Neg(%g2)
  %g4: f32[4] = Add(%g3, %y)
  %g5: f32[4] = Abs(%g4)
  %g6: f32[4] = Mul(%g5, %z)
  %g7: f32[4] = Sqrt(%g6)
}
// EXPECT:
graph @g(%x: f32[4], %y: f32[4], %z: f32[4]) -> (%g7) {
  %g3: f32[4] = regie.Pointwise(%x, %y) region @body(%0: f32[], %1: f32[]) -> (%4) {
    %2: f32[] = Add(%0, %1)
    %3: f32[] = Relu(%2)
    %4: f32[] = Neg(%3)
  }
  %g5: f32[4] = regie.Pointwise(%g3, %y) region @body(%5: f32[], %6: f32[]) -> (%8) {
    %7: f32[] = Add(%5, %6)
    %8: f32[] = Abs(%7)
  }
  %g7: f32[4] = regie.Pointwise(%g5, %z) region @body(%9: f32[], %10: f32[]) -> (%12) {
    %11: f32[] = Mul(%9, %10)
    %12: f32[] = Sqrt(%11)
  }
}
