// RUN: infer-shapes, fold-control-flow, fold-constants, remove-dead
// %k is captured, %h is carried and never changes: both are read as they are, and folded. %u changes by a value that is
// not known, and stays.
graph @g(%x: f32[2], %n: i64[]) -> (%y, %same, %u2) {
  %k: const f32[2] = [1.0, 2.0]
  %h: const f32[2] = [3.0, 4.0]
  %u: const f32[2] = [5.0, 6.0]
  %y, %same, %u2 = Loop(%n, _, %x, %h, %u, %k) {carried = 3} region @body(%i: i64[], %g: bool[], %v: f32[2], %hh: f32[2], %uu: f32[2], %kk: f32[2]) -> (%g, %w, %hh, %uw) {
    %m = Mul(%hh, %kk)
    %w = Add(%v, %m)
    %uw = Add(%uu, %v)
  }
}
// EXPECT:
graph @g(%x: f32[2], %n: i64[]) -> (%y, %h as "same", %u2) {
  %k: const f32[2] = [1.0, 2.0]
  %h: const f32[2] = [3.0, 4.0]
  %u: const f32[2] = [5.0, 6.0]
  %y: f32[2], %same: f32[2], %u2: f32[2] = Loop(%n, _, %x, %h, %u, %k) {carried = 3} region @body(%i: i64[], %g: bool[], %v: f32[2], %hh: f32[2], %uu: f32[2], %kk: f32[2]) -> (%g, %w, %h, %uw) {
    %m: const f32[2] = [3.0, 8.0]
    %w: f32[2] = Add(%v, %m)
    %uw: f32[2] = Add(%uu, %v)
  }
}
