// RUN: fold-constants | fold-constants.keep=DequantizeLinear
// Bytes stay bytes, for the rules of quantised networks; integers are folded.
graph @g() -> (%y, %z) {
  %w: const i8[2] = [1, -2]
  %b: const i32[2] = [3, 4]
  %s: const f32[] = 0.5
  %y: f32[2] = DequantizeLinear(%w, %s)
  %z: f32[2] = DequantizeLinear(%b, %s)
}
// EXPECT:
graph @g() -> (%y, %z) {
  %w: const i8[2] = [1, -2]
  %s: const f32[] = 0.5
  %z: const f32[2] = [1.5, 2.0]
  %y: f32[2] = DequantizeLinear(%w, %s)
}
