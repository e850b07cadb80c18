graph @a() -> () {
  Op() {a = 1, b = -9223372036854775808, c = 1.0, d = 0.1d, e = 1e-05, f = inf, g = -inf, h = nan, i = -0.0}
  Op() {a = "text", b = [1, 2], c = [1.0, 2.5], d = ["x", ""], e = [], f = floats [], g = strings []}
  Op() {"odd key" = 1, t = f32[2] [1.0, -2.0], u = i64[] 3, v = string[1] ["s"], w = bool[2] [true, false]}
}
