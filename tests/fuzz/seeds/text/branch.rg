graph @branch(%c: bool[], %x: f32[2]) -> (%y) {
  %k: const f32[2] = [1.0, 2.0]
  %y: f32[2] = If(%c, %x) {depth = 1} @name("if1") @from("if1 (If)") region @then_branch(%p: f32[2]) -> (%q) {
    %q: f32[2] = Add(%p, %k)
  } region @else_branch(%p#1: f32[2]) -> (%p#1) {
  }
}
