// RUN: place-by-priority, insert-copies, choose-formats
// What control flow reads and hands over is row-major; inside a branch the choice is free.
graph @branches(%c: bool[], %x: f32[1,32,14,14], %w: weight f32[32,32,3,3]) -> (%y) {
  %a: f32[1,32,14,14] = Conv(%x, %w) {pads = [1, 1, 1, 1]}
  %y: f32[1,32,14,14] = If(%c, %a) region @then(%p: f32[1,32,14,14]) -> (%q) {
    %q: f32[1,32,14,14] = Neg(%p)
  } region @else(%r: f32[1,32,14,14]) -> (%t) {
    %b: f32[1,32,14,14] = Conv(%r, %w) {pads = [1, 1, 1, 1]}
    %t: f32[1,32,14,14] = Conv(%b, %w) {pads = [1, 1, 1, 1]}
  }
}
// EXPECT:
