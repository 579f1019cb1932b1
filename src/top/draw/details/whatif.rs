//! What if the cgroup had more memory, or less.

use ratatui::text::Line;

use super::Page;
use crate::pivot::By;
use crate::text::numbers;
use crate::text::width::at_a_word;
use crate::text::wrap::wrapped;
use crate::top::links;
use crate::top::links::WhatIf;
use crate::whatif::Prediction;

impl Page<'_> {
    /// What is predicted, where that was asked for; else how to ask.
    pub(super) fn what_if(&mut self) {
        if self.open.by != By::Cgroup || self.app.scene.replay.is_some() {
            return;
        }
        let Some(asked) = &self.open.what_if else {
            if links::what_if(self.open.by, &self.open.who, false).is_some() {
                self.title("what if it had more memory, or less".into());
                self.plain("w: watch it with kernel programs of its own, and predict its misses");
            }
            return;
        };
        self.asked = Some(self.out.len() + 1);
        self.title("what if it had more memory, or less (w: stop)".into());
        match asked {
            WhatIf::Starting => self.plain("begins to watch"),
            WhatIf::Failed(why) => self.sentence(&format!("- ({})", crate::text::foreign::line(why))),
            WhatIf::Told(told) => self.prediction(told),
        }
    }

    fn sentence(&mut self, text: &str) {
        for line in wrapped(text, self.width()) {
            self.plain(&line);
        }
    }

    fn prediction(&mut self, told: &Prediction) {
        let watched = format!("watched for {:.0} s, {}", told.seconds, told.counted(numbers::percent));
        match (&told.curve, &told.reason) {
            (Some(points), _) => {
                for (i, line) in told.table(points).into_iter().enumerate() {
                    let line = if self.theme.unicode { line.replace('#', "█") } else { line };
                    let line = self.theme.text(at_a_word(&line, self.width()).trim_end());
                    self.out.push(match i {
                        0 => Line::styled(line, self.theme.dim()),
                        _ => Line::raw(line),
                    });
                }
                if let Some(answer) = told.answer() {
                    self.sentence(&answer);
                }
                self.sentence(&watched);
            }
            (None, reason) => {
                let reason = reason.as_deref().unwrap_or("not known");
                self.sentence(&format!("{}; {watched}", crate::text::foreign::line(reason)));
            }
        }
        for note in &told.notes {
            self.sentence(&format!("note: {}", crate::text::foreign::line(note)));
        }
    }
}
