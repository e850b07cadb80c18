// RUN: infer-shapes, fold-control-flow, remove-dead
// Trip counts and conditions that are no constants, and more than one iteration.
graph @g(%x: f32[2], %n: i64[], %p: bool[]) -> (%a, %b) {
  %three: const i64[] = 3
  %a = Loop(%n, %p, %x) {carried = 1} region @body(%i: i64[], %g: bool[], %v: f32[2]) -> (%g, %w) {
    %w = Neg(%v)
  }
  %b = Loop(%three, _, %x) {carried = 1} region @body(%i1: i64[], %g1: bool[], %v1: f32[2]) -> (%g1, %w1) {
    %w1 = Neg(%v1)
  }
}
// EXPECT:
graph @g(%x: f32[2], %n: i64[], %p: bool[]) -> (%a, %b) {
  %three: const i64[] = 3
  %a: f32[2] = Loop(%n, %p, %x) {carried = 1} region @body(%i: i64[], %g: bool[], %v: f32[2]) -> (%g, %w) {
    %w: f32[2] = Neg(%v)
  }
  %b: f32[2] = Loop(%three, _, %x) {carried = 1} region @body(%i1: i64[], %g1: bool[], %v1: f32[2]) -> (%g1, %w1) {
    %w1: f32[2] = Neg(%v1)
  }
}
