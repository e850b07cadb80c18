// RUN: remove-identity
// What is known of the operand that takes the other's place goes on downstream.
graph @g(%x: f32[2,N], %c: bool[]) -> (%z, %w) {
  %a = Identity(%x)
  %b = Relu(%a)
  %z = Neg(%b)
  %w = If(%c, %b) region @then(%d: f32[2,N]) -> (%d) {
  } region @else(%e: f32[2,N]) -> (%f) {
    %f: f32[2,N] = Neg(%e)
  }
}
// EXPECT:
graph @g(%x: f32[2,N], %c: bool[]) -> (%z, %w) on "cpu" = "cpu" 0 space 0 {
  %b: f32[2,N] = Relu(%x)
  %z: f32[2,N] = Neg(%b)
  %w: f32[2,N] = If(%c, %b) region @then(%d: f32[2,N]) -> (%d) {
  } region @else(%e: f32[2,N]) -> (%f) {
    %f: f32[2,N] = Neg(%e)
  }
}
