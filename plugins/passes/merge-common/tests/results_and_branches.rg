// RUN: merge-common
// Two outputs stay two; an output takes over from its like; a branch is merged within itself only.
graph @g(%p: bool[], %x: f32[2]) -> (%y, %z, %v, %w) {
  %y: f32[2] = Relu(%x)
  %z: f32[2] = Relu(%x)
  %a: f32[2] = Neg(%x)
  %v: f32[2] = Neg(%x)
  %c: f32[2] = Mul(%a, %v)
  %w: f32[2] = If(%p, %x, %c) region @then(%x1: f32[2], %c1: f32[2]) -> (%t) {
    %r: f32[2] = Relu(%x1)
    %s: f32[2] = Relu(%x1)
    %t: f32[2] = Add(%r, %s)
  } region @else(%x2: f32[2], %c2: f32[2]) -> (%u) {
    %u: f32[2] = Neg(%c2)
  }
}
// EXPECT:
graph @g(%p: bool[], %x: f32[2]) -> (%y, %z, %a as "v", %w) {
  %y: f32[2] = Relu(%x)
  %z: f32[2] = Relu(%x)
  %a: f32[2] = Neg(%x)
  %c: f32[2] = Mul(%a, %a)
  %w: f32[2] = If(%p, %x, %c) region @then(%x1: f32[2], %c1: f32[2]) -> (%t) {
    %r: f32[2] = Relu(%x1)
    %t: f32[2] = Add(%r, %r)
  } region @else(%x2: f32[2], %c2: f32[2]) -> (%u) {
    %u: f32[2] = Neg(%c2)
  }
}
