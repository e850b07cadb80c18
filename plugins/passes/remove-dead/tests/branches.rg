// RUN: remove-dead
// One If is dead with all that is in it; in the other one a node is. What fed only the dead one goes too.
graph @g(%c: bool[], %x: f32[2]) -> (%y) {
  %r: f32[2] = Relu(%x)
  %unread: f32[2] = If(%c, %r) region @then(%a: f32[2]) -> (%p) {
    %p: f32[2] = Relu(%a)
  } region @else(%b: f32[2]) -> (%b) {
  }
  %y: f32[2] = If(%c, %x) region @then(%a: f32[2]) -> (%p) {
    %p: f32[2] = Relu(%a)
    %q: f32[2] = Neg(%p)
  } region @else(%b: f32[2]) -> (%b) {
  }
}
// EXPECT:
graph @g(%c: bool[], %x: f32[2]) -> (%y) {
  %y: f32[2] = If(%c, %x) region @then(%a: f32[2]) -> (%p) {
    %p: f32[2] = Relu(%a)
  } region @else(%b: f32[2]) -> (%b) {
  }
}
