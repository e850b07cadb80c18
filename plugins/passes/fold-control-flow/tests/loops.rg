// RUN: infer-shapes, fold-control-flow, remove-dead
// No iteration, by the trip count and by the condition; one, by the trip count and by the body.
graph @g(%x: f32[2], %n: i64[]) -> (%a, %all, %b, %c, %once, %d, %e) {
  %none: const i64[] = 0
  %one: const i64[] = 1
  %no: const bool[] = false
  %a, %all = Loop(%none, _, %x) {carried = 1} region @body(%i: i64[], %g: bool[], %v: f32[2]) -> (%g, %w, %v) {
    %w = Neg(%v)
  }
  %b = Loop(%n, %no, %x) {carried = 1} region @body(%i1: i64[], %g1: bool[], %v1: f32[2]) -> (%g1, %w1) {
    %w1 = Neg(%v1)
  }
  %c, %once = Loop(%one, _, %x, %x) {carried = 1} region @body(%i2: i64[], %g2: bool[], %v2: f32[2], %k2: f32[2]) -> (%g2, %w2, %f2) {
    %f2 = Cast(%i2) {to = 1}
    %w2 = Add(%v2, %k2)
  }
  %d = Loop(_, _, %x) {carried = 1} region @body(%i3: i64[], %g3: bool[], %v3: f32[2]) -> (%stop, %w3) {
    %stop: const bool[] = false
    %w3 = Neg(%v3)
  }
  %e = Loop(%n, _, %x) {carried = 1} region @body(%i4: i64[], %g4: bool[], %v4: f32[2]) -> (%g4, %w4) {
    %w4 = Neg(%v4)
  }
}
// EXPECT:
graph @g(%x: f32[2], %n: i64[]) -> (%x as "a", %all, %x as "b", %w2 as "c", %once, %w3 as "d", %e) {
  %all: const f32[0,2] = []
  %0: const i64[] = 0
  %1: const i64[1] = [0]
  %f2: f32[] = Cast(%0) {to = 1}
  %w2: f32[2] = Add(%x, %x)
  %once: f32[1] = Unsqueeze(%f2, %1)
  %w3: f32[2] = Neg(%x)
  %e: f32[2] = Loop(%n, _, %x) {carried = 1} region @body(%i4: i64[], %g4: bool[], %v4: f32[2]) -> (%g4, %w4) {
    %w4: f32[2] = Neg(%v4)
  }
}
