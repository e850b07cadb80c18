// RUN: fold-constants
// 12 bytes would become 256 KiB.
graph @g(%x: f32[65536]) -> (%y) {
  %k: const f32[1] = [2.0]
  %s: const i64[1] = [65536]
  %e: f32[65536] = Expand(%k, %s)
  %y: f32[65536] = Add(%x, %e)
}
// EXPECT:
graph @g(%x: f32[65536]) -> (%y) {
  %k: const f32[1] = [2.0]
  %s: const i64[1] = [65536]
  %e: f32[65536] = Expand(%k, %s)
  %y: f32[65536] = Add(%x, %e)
}
