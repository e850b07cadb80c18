// RUN: infer-shapes, widen-halves, remove-dead
// Values between the operators are never rounded; weights are converted, and folded by fold-constants.
graph @g(%x: f16[1,2,4,4], %w: weight f16[3,2,1,1]) -> (%y, %t) {
  %c = Conv(%x, %w)
  %r = Relu(%c)
  %f = Cast(%r) {to = 1}
  %t = Exp(%f)
  %y = Sigmoid(%r)
}
// EXPECT:
graph @g(%x: f16[1,2,4,4], %w: weight f16[3,2,1,1]) -> (%y, %t) {
  %0: f32[1,2,4,4] = Cast(%x) {to = 1}
  %1: f32[3,2,1,1] = Cast(%w) {to = 1}
  %2: f32[1,3,4,4] = Conv(%0, %1)
  %3: f32[1,3,4,4] = Relu(%2)
  %t: f32[1,3,4,4] = Exp(%3)
  %4: f32[1,3,4,4] = Sigmoid(%3)
  %y: f16[1,3,4,4] = Cast(%4) {to = 10}
}
