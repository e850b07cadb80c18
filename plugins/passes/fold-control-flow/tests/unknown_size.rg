// RUN: infer-shapes, fold-control-flow, remove-dead
// No iteration, but what is collected has N columns, which no constant has.
graph @g(%x: f32[N]) -> (%a, %all) where N in 1..8 {
  %none: const i64[] = 0
  %a, %all = Loop(%none, _, %x) {carried = 1} region @body(%i: i64[], %g: bool[], %v: f32[N]) -> (%g, %w, %v) {
    %w = Neg(%v)
  }
}
// EXPECT:
graph @g(%x: f32[N]) -> (%a, %all) where N in 1..8 {
  %none: const i64[] = 0
  %a: f32[N], %all: f32[0,N] = Loop(%none, _, %x) {carried = 1} region @body(%i: i64[], %g: bool[], %v: f32[N]) -> (%g, %w, %v) {
    %w: f32[N] = Neg(%v)
  }
}
