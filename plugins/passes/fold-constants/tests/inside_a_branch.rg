// RUN: infer-shapes, fold-constants
graph @g(%c: bool[], %x: f32[2]) -> (%y) {
  %k: const f32[2] = [1.0, -1.0]
  %y = If(%c, %x) region @then(%a: f32[2]) -> (%p) {
    %r = Relu(%k)
    %p = Add(%a, %r)
  } region @else(%b: f32[2]) -> (%q) {
    %q = Neg(%k)
  }
}
// EXPECT:
graph @g(%c: bool[], %x: f32[2]) -> (%y) {
  %y: f32[2] = If(%c, %x) region @then(%a: f32[2]) -> (%p) {
    %r: const f32[2] = [1.0, 0.0]
    %p: f32[2] = Add(%a, %r)
  } region @else(%b: f32[2]) -> (%q) {
    %q: const f32[2] = [-1.0, 1.0]
  }
}
