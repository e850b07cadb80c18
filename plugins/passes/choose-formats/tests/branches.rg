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
graph @branches(%c: bool[] @space(0), %x: f32[1,32,14,14] @space(0), %w: weight f32[32,32,3,3]) -> (%y) on "null" = "null0" 1 space 1, "cpu" = "cpu" 0 space 0 {
  %a: f32[1,32,14,14] @space(0) = Conv(%x, %w) {auto_pad = "NOTSET", group = 1, pads = [1, 1, 1, 1]} @engine("cpu")
  %y: f32[1,32,14,14] @space(0) = If(%c, %a) @engine("cpu") region @then(%p: f32[1,32,14,14] @space(0)) -> (%q) {
    %q: f32[1,32,14,14] @space(0) = Neg(%p) @engine("cpu")
  } region @else(%r: f32[1,32,14,14] @space(0)) -> (%t) {
    %b: f32[1,32,14,14] @space(0) = Conv(%r, %w) {auto_pad = "NOTSET", group = 1, pads = [1, 1, 1, 1]} @engine("cpu")
    %t: f32[1,32,14,14] @space(0) = Conv(%b, %w) {auto_pad = "NOTSET", group = 1, pads = [1, 1, 1, 1]} @engine("cpu")
  }
}
