//! What holds for every command line.

use super::*;

fn holds<C: CommandLine>() {
    C::command().debug_assert();
    for line in help::long(C::sections()).lines().chain(C::SHORT.lines()) {
        assert!(line.chars().count() <= 80, "the help fits a terminal of 80 columns: {line}");
    }
    for what in [Generated::Man, Generated::Bash, Generated::Zsh, Generated::Fish] {
        let text = generate::<C>(what).replace('\\', "");
        for option in C::command().get_arguments().filter(|a| !a.is_hide_set()) {
            if let Some(long) = option.get_long() {
                assert!(text.contains(long), "{what:?}: {long}");
            }
        }
    }
}

#[test]
fn definitions_are_sound_and_what_is_generated_knows_every_option() {
    holds::<stat::Args>();
    holds::<top::Args>();
    holds::<du::Args>();
    holds::<daemon::Args>();
}

#[test]
fn the_manual_of_the_screen_knows_every_key() {
    let names = [("\\(aq", "'"), ("\\(ha", "^"), ("\\(ti", "~"), ("\\(ga", "`"), ("\\e", "\\"), ("\\-", "-")];
    let man = generate::<top::Args>(Generated::Man);
    let man = names.iter().fold(man, |man, (name, is)| man.replace(name, is));
    for (_, about) in crate::top::keys::lines() {
        assert!(man.contains(&about.replace('…', "...")), "{about}");
    }
}
