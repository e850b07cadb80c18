// RUN: place-by-priority, insert-copies, alias-in-place
// Split and Slice read where the whole lies. %s begins 16 * 4 * 4 bytes in.
graph @g(%x: f32[1,48,2,2]) -> (%p, %q) {
  %starts: const i64[1] = [16]
  %ends: const i64[1] = [48]
  %axes: const i64[1] = [1]
  %sizes: const i64[2] = [16, 32]
  %h: f32[1,48,2,2] = Exp(%x)
  %a: f32[1,16,2,2], %b: f32[1,32,2,2] = Split(%h, %sizes) {axis = 1}
  %s: f32[1,32,2,2] = Slice(%h, %starts, %ends, %axes)
  %p: f32[1,16,2,2] = Neg(%a)
  %q: f32[1,32,2,2] = Add(%b, %s)
}
// EXPECT:
graph @g(%x: f32[1,48,2,2] @space(0)) -> (%p, %q) on "null" = "null0" 1 space 1, "cpu" = "cpu" 0 space 0 {
  %starts: const i64[1] = [16]
  %ends: const i64[1] = [48]
  %axes: const i64[1] = [1]
  %sizes: const i64[2] = [16, 32]
  %h: f32[1,48,2,2] @space(0) = Exp(%x) @engine("cpu")
  %a: f32[1,16,2,2] @space(0) @alias(%h, 0), %b: f32[1,32,2,2] @space(0) @alias(%h, 256) = Split(%h, %sizes) {axis = 1} @engine("cpu")
  %s: f32[1,32,2,2] @space(0) @alias(%h, 256) = Slice(%h, %starts, %ends, %axes) @engine("cpu")
  %p: f32[1,16,2,2] @space(0) = Neg(%a) @engine("cpu")
  %q: f32[1,32,2,2] @space(0) = Add(%b, %s) @engine("cpu")
}
