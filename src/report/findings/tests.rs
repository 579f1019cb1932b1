//! Each rule, with figures that prove it and figures that do not.
