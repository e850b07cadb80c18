// RUN: fuse-pointwise
// Comparisons, logic, selection, conversion; two chains that meet; an absent operand.
graph @g(%x: f32[4,6], %n: i64[6], %flag: bool[4,1]) -> (%out) {
  %zero: const f32[] = [0.0]
  %top: const f32[] = [0.75]
  %f: f32[6] = Cast(%n) {to = 1}
  %low: bool[4,6] = Less(%x, %zero)
  %pick: bool[4,6] = Or(%low, %flag)
  %held: f32[4,6] = Clip(%x, _, %top)
  %out: f32[4,6] = Where(%pick, %held, %f)
}
// EXPECT:
graph @g(%x: f32[4,6], %n: i64[6], %flag: bool[4,1]) -> (%out) {
  %f: f32[6] = Cast(%n) {to = 1}
  %out: f32[4,6] = regie.Pointwise(%x, %flag, %f) region @body(%0: f32[], %1: bool[], %2: f32[]) -> (%6) {
    %zero: const f32[] = 0.0
    %top: const f32[] = 0.75
    %3: bool[] = Less(%0, %zero)
    %4: bool[] = Or(%3, %1)
    %5: f32[] = Clip(%0, _, %top)
    %6: f32[] = Where(%4, %5, %2)
  }
}
